{{ config(materialized='incremental', unique_key='day', alias='revenue_by_day') }}
select placed_at::date as day, sum(amount) as revenue
from {{ ref('orders') }} group by 1
