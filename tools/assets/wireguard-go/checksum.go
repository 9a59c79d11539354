package main

import (
	"encoding/binary"

	"golang.zx2c4.com/wireguard/tun"
)

// UDP over IPv6, after the fixed header (RFC 8200 section 3, RFC 768): where things stand.
const (
	ipv6HeaderSize    = 40
	udpHeaderSize     = 8
	nextHeaderAt      = 6
	addressesAt       = 8
	udpLengthAt       = ipv6HeaderSize + 4
	udpChecksumAt     = ipv6HeaderSize + 6
	protocolUDP       = 17
	noChecksum        = 0x0000
	zeroChecksumOfUDP = 0xffff
)

// wholeChecksums is a TUN of which no datagram comes that its receiver has to drop. The kernel leaves checksums to
// whoever reads the TUN, and upstream writes a sum of 0 as it is, where UDP has ffff for it: over IPv6 such a datagram
// has no checksum, and one in 65,536 would be lost.
type wholeChecksums struct {
	tun.Device
}

// Read is that of tun.Device: packets in bufs from offset on, their sizes in sizes.
func (device wholeChecksums) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	count, err := device.Device.Read(bufs, sizes, offset)
	for i := range count {
		correctChecksum(bufs[i][offset : offset+sizes[i]])
	}
	return count, err
}

// correctChecksum puts ffff into a UDP datagram over IPv6 whose checksum is 0 and sums to that. One that its sender
// gave no checksum (RFC 6935: tunnels) stays as it is, but for the one in 65,536 of them that has a right one now.
func correctChecksum(packet []byte) {
	if len(packet) < ipv6HeaderSize+udpHeaderSize || packet[0]>>4 != 6 || packet[nextHeaderAt] != protocolUDP {
		return
	}
	if binary.BigEndian.Uint16(packet[udpChecksumAt:]) != noChecksum {
		return
	}
	length := int(binary.BigEndian.Uint16(packet[udpLengthAt:]))
	if length < udpHeaderSize || ipv6HeaderSize+length > len(packet) {
		return
	}
	pseudoHeader := sum(packet[addressesAt:ipv6HeaderSize]) + uint64(length) + protocolUDP
	if fold(pseudoHeader+sum(packet[ipv6HeaderSize:ipv6HeaderSize+length])) == zeroChecksumOfUDP {
		binary.BigEndian.PutUint16(packet[udpChecksumAt:], zeroChecksumOfUDP)
	}
}

// sum adds up big-endian 16-bit words, the last one filled with a zero (RFC 1071).
func sum(data []byte) uint64 {
	var total uint64
	for ; len(data) >= 2; data = data[2:] {
		total += uint64(binary.BigEndian.Uint16(data))
	}
	if len(data) == 1 {
		total += uint64(data[0]) << 8
	}
	return total
}

func fold(total uint64) uint16 {
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}
