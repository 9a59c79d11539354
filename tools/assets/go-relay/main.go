// go-relay PORT - a relay of the documented frames on 127.0.0.1, as Go programs are commonly written: two goroutines and a
// channel for each connection. It is what tools/bench compares apps/relay with, and has nothing of it: no proof, no limits,
// no deadlines but for writes.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
)

type relay struct {
	lock  sync.RWMutex
	peers map[key]*peer
}

func (r *relay) register(k key, p *peer) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.peers[k] = p
}

func (r *relay) forget(k key, p *peer) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.peers[k] == p {
		delete(r.peers, k)
	}
}

func (r *relay) find(k key) *peer {
	r.lock.RLock()
	defer r.lock.RUnlock()
	return r.peers[k]
}

func (r *relay) serve(conn net.Conn) {
	reader := bufio.NewReaderSize(conn, readBytes)
	kind, body, err := readFrame(reader)
	if err != nil || kind != typeRegister || len(body) != keyBytes {
		conn.Close()
		return
	}
	own, p := key(body), newPeer(conn)
	r.register(own, p)
	defer close(p.gone)
	defer r.forget(own, p)
	for {
		kind, body, err := readFrame(reader)
		if err != nil {
			return
		}
		if kind != typeData || len(body) < keyBytes {
			continue
		}
		if to := r.find(key(body[:keyBytes])); to != nil {
			to.send(dataFrame(own, body[keyBytes:]))
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go-relay PORT")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-relay:", err)
		os.Exit(1)
	}
	r := &relay{peers: map[key]*peer{}}
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "go-relay:", err)
			os.Exit(1)
		}
		go r.serve(conn)
	}
}
