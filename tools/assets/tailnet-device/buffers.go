package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A UDP socket may hold no more than net.core.rmem_max, 208 KiB unless the host says otherwise: some hundred packets, and what comes while
// the device waits for a processor is lost. Only a capability goes past that, which the device has not got. So it hands its sockets to
// the process that pod-start has left beside it, which sees to that and nothing else.

const (
	// The socket to that process, as pod-start hands it over.
	buffersFD = 4
	// Sockets are made anew when the node's network changes.
	buffersEvery = 10 * time.Second
)

// bufferRaiser keeps in mind who has been handed over: a file descriptor may be another socket's later.
type bufferRaiser struct {
	handed map[int]uint64
}

// keepBuffers looks after the UDP sockets of the process until ctx ends, or until there is nobody to hand them to.
func keepBuffers(ctx context.Context) {
	if !isRaiser(buffersFD) {
		return
	}
	raiser := bufferRaiser{handed: map[int]uint64{}}
	for raiser.raise() == nil && rest(ctx, buffersEvery) {
	}
}

func (r *bufferRaiser) raise() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // at the next look
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		inode, ok := udpSocket(fd)
		if !ok || r.handed[fd] == inode {
			continue
		}
		if err := unix.Sendmsg(buffersFD, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err != nil {
			if err == unix.EAGAIN {
				return nil
			}
			return err
		}
		r.handed[fd] = inode
	}
	return nil
}

// isRaiser tells the socket of pod-start from whatever else has its number.
func isRaiser(fd int) bool {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_SEQPACKET
}

// udpSocket is the number of a UDP socket.
func udpSocket(fd int) (uint64, bool) {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil || protocol != unix.IPPROTO_UDP {
		return 0, false
	}
	var status unix.Stat_t
	if err := unix.Fstat(fd, &status); err != nil {
		return 0, false
	}
	return status.Ino, true
}
