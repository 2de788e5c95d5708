-- grain: none; a scan of a PostgreSQL server's table begins at its beginning, and by itself, so that the same rows come
-- in the same order
SELECT set_config('synchronize_seqscans', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('datestyle', 'ISO', true)
