select
    order_id::bigint as order_id,
    customer_id::integer as customer_id,
    status::text as status,
    amount::numeric(12, 2) as amount,
    placed_at::timestamptz as placed_at
from {{ ref('paid_orders') }}
