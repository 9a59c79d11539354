// Where the module begins; what is built is in the file of each version: go build -modfile=v1.31.mod .
module unbounded.local/kube-apiserver

go 1.22.0
