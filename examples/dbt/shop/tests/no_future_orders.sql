select * from {{ ref('paid_orders') }} where placed_at > now()
