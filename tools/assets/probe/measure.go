package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	echoSize  = 64
	warmUp    = 200 // echoes before the ones that count
	bulkBlock = 1 << 20
	lostLimit = 3
)

// peer answers roundtrip (UDP) and bulk (TCP) on a port until it is killed, and says when it listens.
func peer(args []string) error {
	if len(args) != 1 {
		return errors.New("needs a PORT")
	}
	socket, err := net.ListenPacket("udp", ":"+args[0])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":"+args[0])
	if err != nil {
		return err
	}
	go func() {
		for {
			if connection, err := listener.Accept(); err == nil {
				go drain(connection)
			}
		}
	}()
	// A blocking socket: Go's poller would take a larger part of a round-trip than the path.
	file, err := socket.(*net.UDPConn).File()
	if err != nil {
		return err
	}
	defer file.Close() // also keeps the collector from closing it
	fmt.Println("listening")
	buffer := make([]byte, 2048)
	for fd := int(file.Fd()); ; {
		n, from, err := syscall.Recvfrom(fd, buffer, 0)
		if err == nil {
			_ = syscall.Sendto(fd, buffer[:n], 0, from)
		} else if err != syscall.EINTR {
			return err
		}
	}
}

// drain throws away what comes and then answers how many bytes it was (8 bytes, big-endian).
func drain(connection net.Conn) {
	defer connection.Close()
	count, buffer := uint64(0), make([]byte, bulkBlock)
	for {
		n, err := connection.Read(buffer)
		count += uint64(n)
		if err == io.EOF {
			_ = binary.Write(connection, binary.BigEndian, count)
		}
		if err != nil {
			return
		}
	}
}

// roundtrip sends one datagram after the other to a peer, each when the last one's answer is there.
func roundtrip(args []string) error {
	if len(args) != 2 {
		return errors.New("needs HOST:PORT COUNT")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil || count < 1 || count > 1_000_000 {
		return fmt.Errorf("COUNT %q is not within 1..1000000", args[1])
	}
	connection, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer connection.Close()
	file, err := connection.(*net.UDPConn).File()
	if err != nil {
		return err
	}
	defer file.Close()
	fd := int(file.Fd())
	wait := syscall.NsecToTimeval(int64(checkTime))
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	data, buffer := payload(echoSize), make([]byte, 2048)
	took, lost := make([]time.Duration, 0, count), 0
	for i := range count + warmUp {
		binary.BigEndian.PutUint32(data, uint32(i))
		start := time.Now()
		answered, err := echoOnce(fd, data, buffer)
		if err != nil {
			return fmt.Errorf("echo %d of %d: %w", i, count+warmUp, err)
		}
		if !answered {
			if lost++; lost > lostLimit {
				return fmt.Errorf("%d of %d echoes were not answered within %v each", lost, i+1, checkTime)
			}
		} else if i >= warmUp {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	micros := func(per100 int) float64 { return float64(took[len(took)*per100/100].Nanoseconds()) / 1000 }
	return printJSON(map[string]any{"count": len(took), "lost": lost, "p50Micros": micros(50), "p99Micros": micros(99)})
}

// echoOnce tells whether the answer came within checkTime; answers to earlier datagrams are passed over.
func echoOnce(fd int, data, buffer []byte) (bool, error) {
	if _, err := syscall.Write(fd, data); err != nil {
		return false, err
	}
	for {
		n, err := syscall.Read(fd, buffer)
		switch {
		case err == syscall.EINTR: // Go's scheduler signals its threads
		case err == syscall.EAGAIN:
			return false, nil
		case err != nil:
			return false, err
		case bytes.Equal(buffer[:n], data):
			return true, nil
		}
	}
}

// bulk sends to a peer over one TCP connection as fast as it goes.
func bulk(args []string) error {
	if len(args) != 2 {
		return errors.New("needs HOST:PORT MILLISECONDS")
	}
	millis, err := strconv.Atoi(args[1])
	if err != nil || millis < 1 || millis > 600_000 {
		return fmt.Errorf("MILLISECONDS %q is not within 1..600000", args[1])
	}
	connection, err := net.DialTimeout("tcp", args[0], checkTime)
	if err != nil {
		return err
	}
	defer connection.Close()
	length := time.Duration(millis) * time.Millisecond
	_ = connection.SetDeadline(time.Now().Add(length + streamTime))
	block, sent, start := make([]byte, bulkBlock), uint64(0), time.Now()
	for time.Since(start) < length {
		n, err := connection.Write(block)
		if err != nil {
			return err
		}
		sent += uint64(n)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	var arrived uint64
	if err := binary.Read(connection, binary.BigEndian, &arrived); err != nil {
		return err
	}
	took := time.Since(start)
	if arrived != sent {
		return fmt.Errorf("%d bytes were sent, %d arrived", sent, arrived)
	}
	return printJSON(map[string]any{"bytes": sent, "megabitsPerSecond": float64(sent) * 8 / 1e6 / took.Seconds()})
}
