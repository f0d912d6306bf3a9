{% snapshot orders_history %}
{{ config(target_schema='snapshots', unique_key='id', strategy='check', check_cols=['status']) }}
select * from {{ source('raw', 'orders') }}
{% endsnapshot %}
