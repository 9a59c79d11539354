package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/wireguard-go/tun"
	"tailscale.com/control/controlclient"
	"tailscale.com/envknob"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnlocal"
	"tailscale.com/ipn/ipnserver"
	"tailscale.com/ipn/store"
	"tailscale.com/net/netmon"
	"tailscale.com/net/netns"
	"tailscale.com/net/tsdial"
	"tailscale.com/tsd"
	"tailscale.com/types/logger"
	"tailscale.com/types/logid"
	"tailscale.com/wgengine"
	"tailscale.com/wgengine/router"
)

type deviceSettings struct {
	dir, controlURL, hostName string
}

// silentRouter leaves addresses and routes to whoever made the TUN.
type silentRouter struct{}

func (silentRouter) Up() error                { return nil }
func (silentRouter) Set(*router.Config) error { return nil }
func (silentRouter) Close() error             { return nil }

// run serves the device until ctx ends.
func run(ctx context.Context, settings deviceSettings) error {
	logf := limitedLog()
	// Nothing is written outside of the folder, and no log is uploaded.
	if err := os.Setenv("TS_LOGS_DIR", settings.dir); err != nil {
		return err
	}
	envknob.SetNoLogsNoSupport()
	// Sockets need neither a mark nor a device to keep out of the TUN: it is in another namespace.
	netns.SetEnabled(false)
	sys := tsd.NewSystem()
	device, err := openTUN()
	if err != nil {
		return err
	}
	backend, err := newBackend(logf, sys, device, settings.dir)
	if err != nil {
		return err
	}
	defer backend.Shutdown()
	server := ipnserver.New(logf, logid.PublicID{}, sys.Bus.Get(), sys.NetMon.Get())
	server.SetLocalBackend(backend)
	listener, err := listen(filepath.Join(settings.dir, "tailscaled.sock"))
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := logIn(ctx, backend, settings); err != nil {
		return err
	}
	go keepBuffers(ctx)
	go forgetKey(ctx, backend, settings.dir)
	withPeers := &sessions{backend: backend, engine: sys.Engine.Get()}
	device.listen(ctx, withPeers)
	go keepPeers(ctx, withPeers, settings.dir)
	if err := server.Run(ctx, listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("LocalAPI: %w", err)
	}
	return nil
}

// newEngine carries packets between the TUN and peers.
func newEngine(logf logger.Logf, sys *tsd.System, device tun.Device, dir string) error {
	port, err := keptPort(dir)
	if err != nil {
		return fmt.Errorf("UDP port: %w", err)
	}
	monitor, err := netmon.New(sys.Bus.Get(), logf)
	if err != nil {
		return fmt.Errorf("watch the node's interfaces: %w", err)
	}
	sys.Set(monitor)
	dialer := &tsdial.Dialer{Logf: logf}
	dialer.SetBus(sys.Bus.Get())
	sys.Set(dialer)
	engine, err := wgengine.NewUserspaceEngine(logf, wgengine.Config{
		Tun:           device,
		Router:        silentRouter{},
		ListenPort:    port,
		EventBus:      sys.Bus.Get(),
		NetMon:        monitor,
		Dialer:        dialer,
		SetSubsystem:  sys.Set,
		ControlKnobs:  sys.ControlKnobs(),
		HealthTracker: sys.HealthTracker.Get(),
		ExtraRootCAs:  sys.ExtraRootCAs,
		Metrics:       sys.UserMetricsRegistry(),
	})
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	sys.Set(engine)
	sys.HealthTracker.Get().SetMetricsRegistry(sys.UserMetricsRegistry())
	sys.Tun.Get().Start()
	return nil
}

func newBackend(logf logger.Logf, sys *tsd.System, device tun.Device, dir string) (*ipnlocal.LocalBackend, error) {
	if err := newEngine(logf, sys, device, dir); err != nil {
		return nil, err
	}
	identity, err := store.New(logf, filepath.Join(dir, "tailscaled.state"))
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	sys.Set(identity)
	backend, err := ipnlocal.NewLocalBackend(logf, logid.PublicID{}, sys, controlclient.LoginDefault)
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	backend.SetVarRoot(dir)
	return backend, nil
}

// listen makes the socket anew: that of a process before is nobody's.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return net.Listen("unix", path)
}

func keyFile(dir string) string { return filepath.Join(dir, "auth-key") }

// logIn starts with what is kept. A key is used only where there is no identity: one that has been used up would be refused for ever.
// Without a key nobody logs in: the control server would be asked again and again, each time for a device of its own. Keys come by the
// LocalAPI as well.
func logIn(ctx context.Context, backend *ipnlocal.LocalBackend, settings deviceSettings) error {
	prefs := ipn.NewPrefs()
	prefs.Hostname, prefs.ControlURL, prefs.WantRunning = settings.hostName, settings.controlURL, true
	prefs.CorpDNS, prefs.RouteAll = false, false
	options := ipn.Options{UpdatePrefs: prefs}
	if key, err := os.ReadFile(keyFile(settings.dir)); err == nil {
		options.AuthKey = strings.TrimSpace(string(key))
	}
	if err := backend.Start(options); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if options.AuthKey == "" || backend.State() != ipn.NeedsLogin {
		return nil
	}
	return backend.StartLoginInteractive(ctx)
}

// forgetKey removes the key once the device is logged in.
func forgetKey(ctx context.Context, backend *ipnlocal.LocalBackend, dir string) {
	backend.WatchNotifications(ctx, ipn.NotifyInitialState, nil, func(notified *ipn.Notify) bool {
		if notified.State == nil || *notified.State != ipn.Running {
			return true
		}
		_ = os.Remove(keyFile(dir)) // what is left is refused: it was for one device
		return false
	})
}
