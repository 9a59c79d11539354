package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// target is one address to try. Checks names what to try there: icmp, udp, tcp (echo servers) or connect (any TCP port).
type target struct {
	Name    string   `json:"name"`
	Address string   `json:"address"`
	Port    int      `json:"port"`
	Checks  []string `json:"checks"`
}

type result struct {
	Name      string `json:"name"`
	Check     string `json:"check"`
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"`
	RTTMicros int64  `json:"rttMicros"`
}

const (
	attempts    = 2 // one lost packet is no verdict on a path; the flow command counts losses
	inParallel  = 24
	smallSize   = 32
	ipv4Header  = 20
	ipv6Header  = 40
	icmpHeader  = 8
	udpHeader   = 8
	tcpFullSize = 4 // a TCP check sends this many MTUs
)

// checkTime is how long an answer may take: PROBE_CHECK_TIME (a duration as in "10s") where machines are slow.
var checkTime = checkTimeOf(os.Getenv("PROBE_CHECK_TIME"))

func checkTimeOf(text string) time.Duration {
	if text == "" {
		return 2 * time.Second
	}
	value, err := time.ParseDuration(text)
	if err != nil || value <= 0 {
		fmt.Fprintf(os.Stderr, "probe: PROBE_CHECK_TIME %q is no duration above 0, as in \"10s\"\n", text)
		os.Exit(2)
	}
	return value
}

func matrix(args []string) error {
	if len(args) != 1 {
		return errors.New("needs the path's MTU")
	}
	mtu, err := strconv.Atoi(args[0])
	if err != nil || mtu < 576 || mtu > 9000 {
		return fmt.Errorf("MTU %q is not within 576..9000", args[0])
	}
	var targets []target
	if err := json.NewDecoder(os.Stdin).Decode(&targets); err != nil {
		return err
	}
	type job struct {
		check string
		run   func() error
		name  string
	}
	var jobs []job
	for _, t := range targets {
		host := net.JoinHostPort(t.Address, strconv.Itoa(t.Port))
		header := ipv4Header
		if ip := net.ParseIP(t.Address); ip != nil && ip.To4() == nil {
			header = ipv6Header
		}
		for _, check := range t.Checks {
			add := func(label string, run func() error) { jobs = append(jobs, job{label, run, t.Name}) }
			switch check {
			case "icmp":
				add("icmp", func() error { return ping(t.Address, smallSize) })
				add("icmp-mtu", func() error { return ping(t.Address, mtu-header-icmpHeader) })
			case "udp":
				add("udp", func() error { return echoDatagram(host, smallSize) })
				add("udp-mtu", func() error { return echoDatagram(host, mtu-header-udpHeader) })
			case "tcp":
				add("tcp", func() error { return echoStream(host, smallSize) })
				add("tcp-mtu", func() error { return echoStream(host, tcpFullSize*mtu) })
			case "connect":
				add("connect", func() error { return connect(host) })
			default:
				return fmt.Errorf("check %q is not icmp, udp, tcp or connect", check)
			}
		}
	}
	results := make([]result, len(jobs))
	var group sync.WaitGroup
	slots := make(chan struct{}, inParallel)
	for i, j := range jobs {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done() }()
			var err error
			var took time.Duration
			for range attempts {
				start := time.Now()
				if err = j.run(); err == nil {
					took = time.Since(start)
					break
				}
			}
			results[i] = result{Name: j.name, Check: j.check, OK: err == nil, RTTMicros: took.Microseconds()}
			if err != nil {
				results[i].Error = err.Error()
			}
		}()
	}
	group.Wait()
	return printJSON(results)
}

func payload(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	return data
}

func connect(host string) error {
	connection, err := net.DialTimeout("tcp", host, checkTime)
	if err == nil {
		err = connection.Close()
	}
	return err
}

func echoDatagram(host string, size int) error {
	connection, err := net.DialTimeout("udp", host, checkTime)
	if err != nil {
		return err
	}
	defer connection.Close()
	return exchange(connection, payload(size))
}

func echoStream(host string, size int) error {
	connection, err := net.DialTimeout("tcp", host, checkTime)
	if err != nil {
		return err
	}
	defer connection.Close()
	return exchange(connection, payload(size))
}

func exchange(connection net.Conn, data []byte) error {
	_ = connection.SetDeadline(time.Now().Add(checkTime))
	if _, err := connection.Write(data); err != nil {
		return err
	}
	back := make([]byte, len(data))
	if _, err := io.ReadFull(connection, back); err != nil {
		return err
	}
	if !bytes.Equal(data, back) {
		return errors.New("the bytes came back changed")
	}
	return nil
}
