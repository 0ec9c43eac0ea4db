"""What every report is made of: pages, tables, numbers, JSON values, drawings and their axes."""
