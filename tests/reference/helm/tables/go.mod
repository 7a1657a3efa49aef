module opdev.local/tables

go 1.24.0
