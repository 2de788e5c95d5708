-- grain: attribute × value of the newest published release of a name
SELECT attribute, value, frequency FROM latest_histograms WHERE name = $name
