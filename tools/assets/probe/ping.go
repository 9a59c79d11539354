package main

import (
	"bytes"
	"encoding/binary"
	"net"
	"syscall"
	"time"
)

// ping sends one ICMP echo request with size payload bytes and Don't Fragment set, and waits for its answer.
func ping(address string, size int) error {
	ip := net.ParseIP(address)
	network, request, reply := "ip4:icmp", byte(8), byte(0)
	if ip.To4() == nil {
		network, request, reply = "ip6:ipv6-icmp", 128, 129
	}
	dialer := net.Dialer{Timeout: checkTime, Control: dontFragment(ip.To4() != nil)}
	connection, err := dialer.Dial(network, address)
	if err != nil {
		return err
	}
	defer connection.Close()
	data := payload(max(size, 8)) // its first bytes tell our answer from others'
	message := make([]byte, 8+len(data))
	message[0] = request
	copy(message[4:8], data[:4])
	copy(message[8:], data)
	if ip.To4() != nil { // the kernel fills in the ICMPv6 checksum
		binary.BigEndian.PutUint16(message[2:], checksum(message))
	}
	_ = connection.SetDeadline(time.Now().Add(checkTime))
	if _, err := connection.Write(message); err != nil {
		return err
	}
	buffer := make([]byte, 65536)
	for {
		// Unlike Read, ReadFrom takes the IPv4 header off.
		n, _, err := connection.(*net.IPConn).ReadFrom(buffer)
		if err != nil {
			return err
		}
		if n == len(message) && buffer[0] == reply && bytes.Equal(buffer[4:n], message[4:]) {
			return nil
		}
	}
}

func dontFragment(ipv4 bool) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var result error
		err := raw.Control(func(fd uintptr) {
			if ipv4 {
				result = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, syscall.IP_PMTUDISC_DO)
			} else {
				result = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER, syscall.IPV6_PMTUDISC_DO)
			}
		})
		if err != nil {
			return err
		}
		return result
	}
}

// checksum is the Internet checksum (RFC 1071).
func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	if len(data)%2 == 1 {
		sum += uint32(data[len(data)-1]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
