-- grain: one readable row of the source, as text; rows that do not parse stay in reject_errors
SELECT {cells}
FROM read_csv(
    $path,
    columns = {columns},
    auto_detect = false,
    delim = $delimiter,
    quote = $quote,
    escape = $quote,
    header = $header,
    comment = $comment,
    nullstr = '',
    hive_partitioning = false, -- a folder named level=low says nothing of the people in it
    ignore_errors = true,
    store_rejects = true,
    rejects_limit = 1000,
    buffer_size = 4000000
)
