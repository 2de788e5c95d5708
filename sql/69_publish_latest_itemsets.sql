-- grain: that of itemsets, for the newest published release of each name
CREATE VIEW IF NOT EXISTS latest_itemsets AS
SELECT latest_releases.name, itemsets.*
FROM itemsets JOIN latest_releases USING (release_id)
