module websocketecho

go 1.19
