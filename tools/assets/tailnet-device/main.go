// Command tailnet-device is a pod's device in a tailnet: the engine of tailscale.com, whose packets are those of a TUN that the pod has.
// It runs in the node's network namespace without capabilities. Compared with tailscaled
//   - it is given the TUN as file descriptor 3 (deploy/image/pod-start.c), which stays when the process ends, and as file descriptor 4
//     a socket to whom it gets the buffers of its UDP sockets from;
//   - it sets no address, route, rule or resolver anywhere: what the control server says is told (LocalAPI), and applied by whoever
//     made the TUN;
//   - it has no tunnel of its own into the node: no SSH, no file sharing, no web client, no proxy.
//
// Usage: tailnet-device -dir DIR -control URL -hostname NAME
//
// DIR is the device's own, of mode 0700. In it are tailscaled.state (the identity), tailscaled.sock (the LocalAPI, as tailscaled has
// it), auth-key, which is read where the device is not logged in, and removed once it is, and what lets the next process go on talking:
// port, and peers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var settings deviceSettings
	flag.StringVar(&settings.dir, "dir", "", "the device's folder")
	flag.StringVar(&settings.controlURL, "control", "", "URL of the control server")
	flag.StringVar(&settings.hostName, "hostname", "", "name of the device")
	flag.Parse()
	if settings.dir == "" || settings.controlURL == "" || settings.hostName == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: tailnet-device -dir DIR -control URL -hostname NAME, with a TUN as file descriptor 3")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go giveBack(ctx)
	if err := run(ctx, settings); err != nil {
		fmt.Fprintf(os.Stderr, "tailnet-device: %v\n", err)
		os.Exit(1)
	}
}
