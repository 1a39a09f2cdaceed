"""Exercises the Python client on a live system: see smoke.sh."""

import json
import sys

from navlog_client import AuthenticatedClient, Client
from navlog_client.api.partner import get_partner_stats
from navlog_client.api.service import get_status
from navlog_client.api.users import list_users
from navlog_client.api.vaults import list_vaults
from navlog_client.models import PartnerStatsAnswer, StatusAnswer, UnauthorizedError, UserListAnswer, VaultListAnswer

address, key, block = sys.argv[1], sys.argv[2], int(sys.argv[3])


def expect(answer, kind):
    if not isinstance(answer, kind):
        sys.exit(f"{answer!r} is no {kind.__name__}")
    return answer


def deposited(client, block):
    """Pages through all users as of a block: how many there are, and how much they deposited."""
    users, total, page = 0, 0, 1
    while True:
        answer = expect(list_users.sync(client=client, page=page, page_size=3, as_of_block=block), UserListAnswer)
        for user in answer.data:
            total += int(user.total_deposited)
            users += 1
        if not answer.meta.has_next_page:
            if users != answer.meta.total:
                sys.exit(f"as of block {block} there are {answer.meta.total} users, and the pages had {users}")
            return users, [str(block), str(total)]
        page += 1


def stats(key):
    client = AuthenticatedClient(base_url=address, token=key, prefix="", auth_header_name="x-api-key")
    return get_partner_stats.sync(client=client, as_of_block=block)


public = Client(base_url=address)
status = expect(get_status.sync(client=public), StatusAnswer)
vaults = expect(list_vaults.sync(client=public, as_of_block=block), VaultListAnswer).data
first = max(int(v.start_block) for v in vaults)
_, then = deposited(public, (first + block) // 2)
users, now = deposited(public, block)
partner = expect(stats(key), PartnerStatsAnswer).data
refused = expect(stats("nk_test_unknown"), UnauthorizedError)
line = {
    "chainId": status.data.chain_id,
    "vaults": [f"{v.address} {v.total_assets or 'null'}" for v in vaults],
    "users": users,
    "then": then,
    "now": now,
    "partner": f"{partner.partner_id} {partner.total_volume}",
    "refused": refused.error.code.value,
}
print(json.dumps(line, separators=(",", ":")))
