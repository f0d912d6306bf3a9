select id as customer_id, country from {{ source('raw', 'customers') }}
