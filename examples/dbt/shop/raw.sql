-- What the sources of the project read: run it once in an empty database `shop`.
CREATE SCHEMA raw;
CREATE TABLE raw.orders (
    id bigint PRIMARY KEY,
    customer_id integer NOT NULL,
    status text NOT NULL,
    amount numeric(12, 2) NOT NULL,
    placed_at timestamp with time zone NOT NULL
);
COMMENT ON COLUMN raw.orders.placed_at IS 'When the customer confirmed the order.';
CREATE TABLE raw.customers (id integer PRIMARY KEY, email text, country character(2));
INSERT INTO raw.orders VALUES
    (1, 1, 'paid', 12.50, '2024-01-01 10:00+00'),
    (2, 2, 'returned', 99.00, '2024-01-02 11:00+00'),
    (3, 2, 'refunded', 5.00, '2024-01-02 12:00+00');
INSERT INTO raw.customers VALUES (1, 'a@example.org', 'DE'), (2, 'b@example.org', 'XX');
