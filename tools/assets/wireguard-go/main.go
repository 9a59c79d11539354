// Command wireguard-go carries WireGuard tunnels where the kernel cannot. It is golang.zx2c4.com/wireguard with four
// differences, the first three for a device which must outlive the process:
//   - it leaves the MTU of a TUN that exists already as it is (upstream sets 1420 at every start);
//   - WG_UAPI_DIR names the folder of the control socket, so that several network namespaces of one machine can each
//     have a device of the same name;
//   - it stays in the foreground, and leaves the TUN to the kernel when it ends;
//   - a UDP checksum over IPv6 that comes out as 0 is ffff (checksum.go).
//
// Usage: wireguard-go [-f] NAME
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

const defaultSocketDirectory = "/var/run/wireguard"

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 2 && (arguments[0] == "-f" || arguments[0] == "--foreground") {
		arguments = arguments[1:]
	}
	if len(arguments) != 1 || arguments[0] == "" || arguments[0][0] == '-' {
		fmt.Fprintln(os.Stderr, "usage: wireguard-go [-f] NAME")
		os.Exit(2)
	}
	if err := run(arguments[0]); err != nil {
		fmt.Fprintf(os.Stderr, "wireguard-go: %s: %v\n", arguments[0], err)
		os.Exit(1)
	}
}

func run(name string) error {
	link, err := tun.CreateTUN(name, mtuOf(name))
	if err != nil {
		return fmt.Errorf("attach to the TUN: %w", err)
	}
	// Only now: whoever sees the socket may rely on the TUN being attached, and on its MTU staying as it is.
	listener, err := listen(name)
	if err != nil {
		return err
	}
	defer listener.Close()
	wg := device.NewDevice(wholeChecksums{link}, conn.NewDefaultBind(), device.NewLogger(logLevel(), "("+name+") "))
	defer wg.Close()

	failed := make(chan error, 1)
	go serve(listener, wg, failed)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM, os.Interrupt)
	select {
	case <-stop:
		return nil
	case <-wg.Wait():
		return fmt.Errorf("the TUN is gone")
	case err := <-failed:
		return err
	}
}

// mtuOf is the MTU of the link, or WireGuard's default for one that is yet to be made.
func mtuOf(name string) int {
	if link, err := net.InterfaceByName(name); err == nil {
		return link.MTU
	}
	return device.DefaultMTU
}

// listen opens the control socket for root only. A socket that nobody answers is a dead predecessor's.
func listen(name string) (net.Listener, error) {
	directory := os.Getenv("WG_UAPI_DIR")
	if directory == "" {
		directory = defaultSocketDirectory
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(directory, name+".sock")
	if other, err := net.Dial("unix", path); err == nil {
		other.Close()
		return nil, fmt.Errorf("%s is in use by another process", path)
	}
	// Under its name only when it answers: whoever sees it may connect.
	part := path + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	defer unix.Umask(unix.Umask(0o077))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: part, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Rename(part, path); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

func serve(listener net.Listener, wg *device.Device, failed chan<- error) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			failed <- err
			return
		}
		go wg.IpcHandle(connection)
	}
}

func logLevel() int {
	switch os.Getenv("LOG_LEVEL") {
	case "verbose", "debug":
		return device.LogLevelVerbose
	case "silent":
		return device.LogLevelSilent
	}
	return device.LogLevelError
}
