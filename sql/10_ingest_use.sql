-- grain: none; a view of the attached database finds its tables by the names that it calls them
USE given
