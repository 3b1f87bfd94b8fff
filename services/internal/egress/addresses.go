package egress

import "net/netip"

// refusedRanges is what is not the public internet, with what it is. IPv6 outside 2000::/3 needs no rows: it is not
// handed out at all.
// Source: the IANA special-purpose address registries (RFC 6890) and the addresses that cloud providers give their
// metadata services.
var refusedRanges = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a provider (CGNAT)"}, // and the metadata service of Alibaba Cloud
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata (Azure)"}, // public in form, the hypervisor in fact
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

// refusalOf says what an address is that may not be called, or nothing. Zones count for nothing, and an IPv4 address
// is looked at in whatever IPv6 form it comes.
func refusalOf(a netip.Addr) string {
	a = plainAddress(a)
	if nat64.Contains(a) {
		bytes := a.As16()
		if reason := refusalOf(netip.AddrFrom4([4]byte(bytes[12:]))); reason != "" {
			return reason + ", through NAT64"
		}
		return "" // the way to public IPv4 hosts in networks that have only IPv6
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

// plainAddress is the address without a zone, and as IPv4 when it is an IPv4-mapped one.
func plainAddress(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }
