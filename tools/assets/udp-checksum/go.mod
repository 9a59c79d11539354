module unbounded.local/udp-checksum

go 1.26.0
