module check.test

go 1.21
