package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

const (
	maxInjected  = 10000
	maxFrameSize = 9000
)

// inject sends what no kernel would send by itself: whole packets, whatever their source, as the routes lead, or whole
// frames on a device. One in hexadecimal a line of the input.
func inject(args []string) error {
	send, err := sender(args)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 2*maxFrameSize), 2*maxFrameSize+2)
	sent, refused := 0, 0
	for lines.Scan() && sent+refused < maxInjected {
		data, err := hex.DecodeString(lines.Text())
		if err != nil || len(data) < 20 {
			return fmt.Errorf("line %d is no packet in hexadecimal", sent+refused+1)
		}
		if err := send(data); err != nil {
			refused++ // no route, no buffer: the kernel's own answer to a forged packet
			continue
		}
		sent++
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return printJSON(map[string]int{"sent": sent, "refused": refused})
}

func sender(args []string) (func([]byte) error, error) {
	switch {
	case len(args) == 1 && args[0] == "packets":
		return packetSender()
	case len(args) == 2 && args[0] == "frames":
		return frameSender(args[1])
	}
	return nil, errors.New("needs packets, or frames DEVICE")
}

func packetSender() (func([]byte) error, error) {
	four, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	if err != nil {
		return nil, err
	}
	six, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	if err != nil {
		return nil, err
	}
	return func(packet []byte) error {
		if packet[0]>>4 == 4 {
			return syscall.Sendto(four, packet, 0, &syscall.SockaddrInet4{Addr: [4]byte(packet[16:20])})
		}
		if len(packet) < 40 {
			return errors.New("shorter than an IPv6 header")
		}
		return syscall.Sendto(six, packet, 0, &syscall.SockaddrInet6{Addr: [16]byte(packet[24:40])})
	}, nil
}

func frameSender(device string) (func([]byte) error, error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	if err != nil {
		return nil, err
	}
	return func(frame []byte) error {
		return syscall.Sendto(socket, frame, 0, &syscall.SockaddrLinklayer{Ifindex: link.Index})
	}, nil
}
