package egress

import "net/netip"

// refusedRanges lists the address ranges outside the public internet, with their meaning. IPv6 outside 2000::/3 needs
// no rows, because it is not allocated. Source: the IANA special-purpose address registries (RFC 6890) and the metadata
// service addresses of cloud providers.
var refusedRanges = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a provider (CGNAT)"}, // and the metadata service of Alibaba Cloud
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata (Azure)"}, // formally public, used by the hypervisor
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},               // and most metadata services
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols"}, // and the metadata service of Oracle Cloud
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001::/23"), "reserved for protocols"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "unique local"}, // and the metadata services of AWS and Google over IPv6
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// refusalOf returns why an address may not be called, or "". It ignores zones, and checks an IPv4 address in any of its
// IPv6 forms.
func refusalOf(a netip.Addr) string {
	a = plainAddress(a)
	if nat64.Contains(a) {
		bytes := a.As16()
		if reason := refusalOf(netip.AddrFrom4([4]byte(bytes[12:]))); reason != "" {
			return reason + ", through NAT64"
		}
		return "" // NAT64: reaches public IPv4 hosts from IPv6-only networks
	}
	for _, r := range refusedRanges {
		if r.prefix.Contains(a) {
			return r.reason
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "not public"
	}
	return ""
}

// plainAddress removes the zone and unmaps an IPv4-mapped address.
func plainAddress(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }
