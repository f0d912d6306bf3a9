select id as order_id, customer_id, status, amount, placed_at from {{ source('raw', 'orders') }}
