package udpchecksum

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// datagram is one of UDP over IPv6 that sums to ffff, with a checksum of 0: as a TUN's reader completes it.
func datagram(payload ...byte) []byte {
	packet := make([]byte, ipv6HeaderSize+udpHeaderSize, ipv6HeaderSize+udpHeaderSize+2+len(payload))
	packet[0], packet[6], packet[7] = 0x60, protocolUDP, 64
	copy(packet[8:], bytes.Repeat([]byte{0xfd, 0x01}, 16))
	packet = append(packet, 0, 0)
	packet = append(packet, payload...)
	length := len(packet) - ipv6HeaderSize
	binary.BigEndian.PutUint16(packet[4:], uint16(length))
	binary.BigEndian.PutUint16(packet[ipv6HeaderSize+4:], uint16(length))
	rest := fold(sum(packet[8:ipv6HeaderSize]) + uint64(length) + protocolUDP + sum(packet[ipv6HeaderSize:]))
	binary.BigEndian.PutUint16(packet[ipv6HeaderSize+udpHeaderSize:], 0xffff-rest)
	return packet
}

func frame(etherType uint16, packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 12), etherType), packet...)
}

func ipv6(protocol byte, payload []byte) []byte {
	header := make([]byte, ipv6HeaderSize)
	header[0], header[6] = 0x60, protocol
	binary.BigEndian.PutUint16(header[4:], uint16(len(payload)))
	return append(header, payload...)
}

func ipv4(protocol byte, words byte, payload []byte) []byte {
	header := make([]byte, int(words)*4)
	header[0], header[9] = 0x40|words, protocol
	return append(header, payload...)
}

func vxlan(port uint16, vni byte, payload []byte) []byte {
	header := make([]byte, udpHeaderSize+vxlanHeaderSize)
	binary.BigEndian.PutUint16(header[2:], port)
	binary.BigEndian.PutUint16(header[4:], uint16(len(header)+len(payload)))
	binary.BigEndian.PutUint16(header[6:], 1) // has one
	header[8], header[14] = 0x08, vni
	return append(header, payload...)
}

func corrected(packet []byte) []byte {
	packet = slices.Clone(packet)
	Correct(packet)
	return packet
}

func TestAChecksumThatComesOutAs0IsFFFFWhereverItStands(t *testing.T) {
	for _, inner := range [][]byte{datagram(), datagram(1), datagram(1, 2, 3, 4)} {
		want := slices.Clone(inner)
		want[ipv6HeaderSize+6], want[ipv6HeaderSize+7] = 0xff, 0xff
		for name, wrap := range map[string]func([]byte) []byte{
			"the packet itself": func(packet []byte) []byte { return packet },
			"a frame in SRv6":   func(packet []byte) []byte { return ipv6(protocolEthernet, frame(etherTypeIPv6, packet)) },
			"to an egress owner by IPv4": func(packet []byte) []byte {
				return ipv4(protocolUDP, 5, vxlan(egressPort, 2, frame(etherTypeIPv6, packet)))
			},
			"the same with IPv4 options": func(packet []byte) []byte {
				return ipv4(protocolUDP, 7, vxlan(egressPort, 2, frame(etherTypeIPv6, packet)))
			},
			"to an egress owner by IPv6": func(packet []byte) []byte {
				return ipv6(protocolUDP, vxlan(egressPort, 2, frame(etherTypeIPv6, packet)))
			},
			"with bytes behind it": func(packet []byte) []byte { return append(slices.Clone(packet), 7, 7) },
		} {
			if got := corrected(wrap(inner)); !bytes.Equal(got, wrap(want)) {
				t.Errorf("%s: %x", name, got)
			}
		}
	}
}

func TestWhatIsNotOursOrHasNoChecksumStaysAsItIs(t *testing.T) {
	inner := datagram(1, 2)
	without := slices.Clone(inner)
	without[len(without)-1]++ // sums to something else: its sender gave it none
	tcp := slices.Clone(inner)
	tcp[6] = 6
	long := slices.Clone(inner)
	binary.BigEndian.PutUint16(long[ipv6HeaderSize+4:], 0xffff)
	short := slices.Clone(inner)
	binary.BigEndian.PutUint16(short[ipv6HeaderSize+4:], 7)
	later := ipv4(protocolUDP, 5, vxlan(egressPort, 2, frame(etherTypeIPv6, inner)))
	later[7] = 1
	for name, packet := range map[string][]byte{
		"without a checksum":               without,
		"no UDP":                           tcp,
		"longer than the packet":           long,
		"shorter than its header":          short,
		"a frame of another type":          ipv6(protocolEthernet, frame(0x0800, inner)),
		"VXLAN of another port":            ipv4(protocolUDP, 5, vxlan(4789, 2, frame(etherTypeIPv6, inner))),
		"VXLAN of another number":          ipv4(protocolUDP, 5, vxlan(egressPort, 1, frame(etherTypeIPv6, inner))),
		"a later fragment":                 later,
		"an IPv4 header shorter than 20":   append([]byte{0x44}, later[1:]...),
		"an IPv4 header beyond the packet": {0x4f, 0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"version 5":                        append([]byte{0x50}, inner[1:]...),
	} {
		if got := corrected(packet); !bytes.Equal(got, packet) {
			t.Errorf("%s: %x", name, got)
		}
	}
}

func TestAPacketThatIsCutOffAnywhereIsReadNoFurther(t *testing.T) {
	for _, whole := range [][]byte{
		datagram(1),
		ipv6(protocolEthernet, frame(etherTypeIPv6, datagram(1))),
		ipv4(protocolUDP, 5, vxlan(egressPort, 2, frame(etherTypeIPv6, datagram(1)))),
	} {
		for size := range whole {
			cut := slices.Clip(slices.Clone(whole[:size]))
			if got := corrected(cut); !bytes.Equal(got, cut) {
				t.Errorf("%d of %d bytes: %x", size, len(whole), got)
			}
		}
	}
}

func FuzzCorrectChangesNothingButAChecksumOf0(f *testing.F) {
	f.Add(datagram(1))
	f.Add(ipv6(protocolEthernet, frame(etherTypeIPv6, datagram(1))))
	f.Add(ipv4(protocolUDP, 5, vxlan(egressPort, 2, frame(etherTypeIPv6, datagram(1)))))
	f.Fuzz(func(t *testing.T, packet []byte) {
		got := corrected(packet)
		changed := 0
		for at := range packet {
			if got[at] != packet[at] {
				changed++
				if packet[at] != 0 || got[at] != 0xff {
					t.Errorf("byte %d is %x, was %x", at, got[at], packet[at])
				}
			}
		}
		if changed != 0 && changed != 2 {
			t.Errorf("%d bytes changed", changed)
		}
	})
}
