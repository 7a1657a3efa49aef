module opdev.local/batch

go 1.24
