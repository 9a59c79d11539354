package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

const (
	echoPort = 9000 // UDP: the datagram back; TCP: the bytes back
	sinkPort = 9001 // TCP: SHA-256 (hex) of all bytes until the sender shuts down its side
	httpPort = 8080 // /: the pod's name; /client: the address that the request came from
)

// serve answers until it is killed.
func serve([]string) error {
	datagrams, err := net.ListenPacket("udp", fmt.Sprintf(":%d", echoPort))
	if err != nil {
		return err
	}
	if err := roomyBuffer(datagrams.(*net.UDPConn)); err != nil {
		fmt.Fprintln(os.Stderr, "probe serve: datagrams may be lost here under load:", err)
	}
	go echoDatagrams(datagrams)
	if err := accept(echoPort, func(c net.Conn) { _, _ = io.Copy(c, c) }); err != nil {
		return err
	}
	if err := accept(sinkPort, func(c net.Conn) {
		sum := sha256.New()
		if _, err := io.Copy(sum, bufio.NewReaderSize(c, 1<<18)); err == nil {
			_, _ = io.WriteString(c, hex.EncodeToString(sum.Sum(nil)))
		}
	}); err != nil {
		return err
	}
	name, _ := os.Hostname()
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) })
	http.HandleFunc("/client", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintln(w, host)
	})
	return http.ListenAndServe(fmt.Sprintf(":%d", httpPort), nil)
}

func echoDatagrams(socket net.PacketConn) {
	buffer := make([]byte, 65536)
	for {
		n, from, err := socket.ReadFrom(buffer)
		if err != nil {
			continue // an ICMP error that an earlier answer caused
		}
		_, _ = socket.WriteTo(buffer[:n], from)
	}
}

func accept(port int, handle func(net.Conn)) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				continue
			}
			go func() {
				defer connection.Close()
				handle(connection)
			}()
		}
	}()
	return nil
}
