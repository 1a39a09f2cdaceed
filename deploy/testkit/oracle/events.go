package oracle

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

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
			"id": id, "version": integer(uint(1)), "type": kind, "createdAt": instant(f.Time), "partnerId": integer(partner),
			"data": data,
		}
	}
	return found
}

var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://navlog.dev/event"))

// eventID returns the version 5 UUID of a name in navlog's namespace, which is itself a UUID in the namespace of URLs.
func eventID(name string) string { return uuid.NewSHA1(namespace, []byte(name)).String() }
