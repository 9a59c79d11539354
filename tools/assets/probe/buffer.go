package main

import (
	"net"
	"syscall"
)

// A socket that holds seconds of a flow: what is lost must be lost by the network, not by a process that had to wait
// for a processor.
const bufferBytes = 8 << 20

// roomyBuffer goes past the machine's limit for sockets, which needs CAP_NET_ADMIN.
func roomyBuffer(socket *net.UDPConn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) {
		result = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, bufferBytes)
	}); err != nil {
		return err
	}
	return result
}
