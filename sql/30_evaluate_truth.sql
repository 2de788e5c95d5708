-- grain: level × value of one attribute: true counts, for evaluations only
SELECT {level} AS level, {value} AS value, count(*)::BIGINT AS n FROM people GROUP BY ALL
