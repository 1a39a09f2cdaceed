package oracle

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/navlog/navlog/schemas/contracts"
)

// Events returns the webhooks that the final blocks of a history cause for the partners: the body of each by its id.
func (h *History) Events(partners []Partner) map[string]Object {
	known := map[uint32]bool{}
	for _, p := range partners {
		known[p.ID] = true
	}
	found := map[string]Object{}
	for _, f := range h.Facts {
		if f.Block > h.Final {
			break
		}
		var kind string
		var partner uint32
		data := Object{
			"vaultAddress": f.Vault.Hex(), "txHash": f.Tx.Hex(), "blockNumber": decimal(f.Block), "logIndex": integer(f.Index),
			"timestamp": instant(f.Time),
		}
		switch e := f.Event.(type) {
		case contracts.DepositAccepted:
			kind, partner = "deposit.referral", e.PartnerID
			data["userAddress"], data["assets"], data["shares"] = e.Owner.Hex(), e.Assets.String(), e.Shares.String()
		case contracts.WithdrawalRequested:
			kind, partner = "withdrawal.referral", e.PartnerID
			data["userAddress"], data["shares"] = e.Owner.Hex(), e.Shares.String()
			data["assetsEstimate"], data["requestIndex"] = e.AssetsEstimate.String(), e.RequestIndex.String()
		}
		if !known[partner] {
			continue
		}
		id := eventID(fmt.Sprintf("%d:%s:%d:%s:%d", h.chainID, strings.ToLower(f.Tx.Hex()), f.Index, kind, partner))
		found[id] = Object{
			"id": id, "version": integer(uint(1)), "type": kind, "createdAt": instant(f.Time), "partnerId": integer(partner), "data": data,
		}
	}
	return found
}

// eventID returns the version 5 UUID of a name in navlog's namespace, which is itself a UUID in the namespace of URLs.
func eventID(name string) string {
	urls := [16]byte{0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}
	id := uuid5(uuid5(urls, "https://navlog.dev/event"), name)
	s := hex.EncodeToString(id[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func uuid5(namespace [16]byte, name string) [16]byte {
	sum := sha1.Sum(append(namespace[:], name...))
	id := [16]byte(sum[:16])
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return id
}
