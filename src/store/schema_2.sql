-- schema_2.sql - from version 1 to 2: points are found by status within their sweep.
create index runs_by_status on runs (sweep_id, status);
