module unbounded.local/go-relay

go 1.26.0
