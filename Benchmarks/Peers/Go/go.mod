module net-http

go 1.19
