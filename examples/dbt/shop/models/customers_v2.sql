select c.customer_id, c.country, n.name as country_name
from {{ ref('stg_customers') }} as c
left join {{ ref('countries') }} as n on n.code = c.country
