package main

import (
	"fmt"

	"github.com/tailscale/wireguard-go/tun"
	"unbounded.local/udp-checksum"
)

// The TUN as pod-start hands it over.
const tunFD = 3

// Of packets in a tailnet, bytes, as all clients have it.
const deviceMTU = 1280

// pathlessTUN is a TUN in another network namespace: what is asked by its name would be answered by the own one.
type pathlessTUN struct {
	tun.Device
	name string
}

func (t pathlessTUN) Name() (string, error) { return t.name, nil }
func (t pathlessTUN) MTU() (int, error)     { return deviceMTU, nil }

// Read is that of tun.Device: packets from offset on, their sizes in sizes.
func (t pathlessTUN) Read(packets [][]byte, sizes []int, offset int) (int, error) {
	n, err := t.Device.Read(packets, sizes, offset)
	for i := range n {
		udpchecksum.Correct(packets[i][offset : offset+sizes[i]])
	}
	return n, err
}

func openTUN() (*watchedTUN, error) {
	device, name, err := tun.CreateUnmonitoredTUNFromFD(tunFD)
	if err != nil {
		return nil, fmt.Errorf("file descriptor %d is no TUN: %w", tunFD, err)
	}
	return watchTUN(pathlessTUN{device, name}), nil
}
