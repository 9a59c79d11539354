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

func freePort() (uint16, error) {
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
