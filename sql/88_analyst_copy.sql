-- grain: every table, view and macro of the results
COPY FROM DATABASE results TO memory
