package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// keptPort is the UDP port that the device had before, or a free one, which is kept: peers that talk to it go on sending there when
// its process is another one. When somebody else has it by now the engine takes any.
func keptPort(dir string) (uint16, error) {
	file := filepath.Join(dir, "port")
	if text, err := os.ReadFile(file); err == nil {
		if port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16); err == nil && port >= 1024 {
			return uint16(port), nil
		}
	}
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	return port, writeWhole(file, strconv.Itoa(int(port)))
}

const (
	// From here on nodes and gateways have the ports of their WireGuard interfaces, which are in this network namespace, and
	// which cannot come up while somebody else has theirs (MESH_WIREGUARD_PORT of libs/crds).
	firstWireGuardPort = 51820
	// The kernel proposes ports; where hardly one of its range suits, the last proposal has to do.
	proposals = 32
)

func freePort() (uint16, error) {
	for proposal := 1; ; proposal++ {
		port, err := proposePort()
		if err != nil || port < firstWireGuardPort || proposal == proposals {
			return port, err
		}
	}
}

func proposePort() (uint16, error) {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	return uint16(socket.LocalAddr().(*net.UDPAddr).Port), nil
}

// writeWhole leaves the former file or the new one, if the process is killed.
func writeWhole(file, text string) error {
	part := file + ".part"
	if err := os.WriteFile(part, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(part, file)
}
