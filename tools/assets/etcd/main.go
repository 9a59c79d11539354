// Command etcd is the store of an API server, as go.etcd.io/etcd/server/v3 makes it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
