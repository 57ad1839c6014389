package tunneler

import (
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/tun"
)

// many are services with ten addresses each, at one of a hundred ports.
func many(services int) (all []*sdk.Service) {
	for s := range services {
		var addresses []string
		for a := range 10 {
			addresses = append(addresses, fmt.Sprintf(`"10.%d.%d.%d"`, 100+s/250, s%250, a))
		}
		name := fmt.Sprintf("service %d", s)
		all = append(all, offered(name, name, fmt.Sprintf(`{"addresses":[%s],"portRanges":[{"low":%d,"high":%[2]d}],"protocols":["tcp"]}`, strings.Join(addresses, ","), 8000+s%100)))
	}
	return all
}

// BenchmarkChange has a service come or go among a thousand with ten addresses each,
// until the machine leads its addresses to the device, or no longer. The device is in a
// network of its own.
func BenchmarkChange(b *testing.B) {
	runtime.LockOSThread() // until its end: nobody else shall be in this network
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		b.Fatalf("nobody but root may make a network: %v", err)
	}
	t := &Tunneler{log: slog.New(slog.DiscardHandler), opt: Options{Now: time.Now}}
	i, err := newInterceptor(b.Context(), t, netip.MustParsePrefix(tun.DefaultRange))
	if err != nil {
		b.Fatal(err)
	}
	device, err := tun.Open(tun.Options{Name: "nkbench", Range: i.pool.Prefix(), Connect: (*tun.Wish).Refuse, Datagrams: func(*tun.Flow) bool { return false }})
	if err != nil {
		b.Fatal(err)
	}
	defer device.Close()
	i.lead = func(want []tun.Route) error {
		err := device.Route(want)
		if err != nil {
			b.Error(err)
		}
		return err
	}
	var client sdk.Client
	services := many(1000)
	began := time.Now()
	i.offer(&client, "laptop", services)
	first := time.Since(began)
	for n := 0; b.Loop(); n++ {
		i.offer(&client, "laptop", services[n%2:])
	}
	b.ReportMetric(float64(first.Milliseconds()), "ms-at-first")
}
