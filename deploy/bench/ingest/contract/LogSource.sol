// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A fake vault: it emits the reference vault's events as fast as the chain allows, and keeps no state except the counters
/// that make them consistent. It answers an indexer's calls to a vault, and is its own asset.
///
/// A round is 20 logs that could be a vault's day: 10 deposits and their sweep; 3 requests, of which two are funded in one
/// settlement, one of these is claimed, and the third is cancelled; a new valuation at the end. One event in four is attributed
/// to a partner.
contract LogSource {
    event DepositAccepted(
        uint256 indexed depositId,
        address indexed owner,
        uint32 indexed partnerId,
        address sender,
        uint256 assets,
        uint256 shares
    );
    event WithdrawalRequested(
        uint256 indexed requestIndex,
        address indexed owner,
        uint32 indexed partnerId,
        address receiver,
        uint256 shares,
        uint256 assetsEstimate,
        uint64 expiresAt
    );
    event WithdrawalFunded(
        uint256 indexed requestIndex,
        address indexed owner,
        uint256 indexed settlementId,
        uint256 shares,
        uint256 assets
    );
    event WithdrawalClaimed(
        uint256 indexed requestIndex, address indexed owner, address indexed receiver, uint256 shares, uint256 assets
    );
    event WithdrawalCancelled(uint256 indexed requestIndex, address indexed owner, uint256 shares);
    event NavUpdated(
        uint256 indexed navId, address indexed updater, uint256 navPerShare, uint256 totalAssets, uint256 totalSupply
    );
    event DepositsSwept(
        uint256 indexed sweepId,
        address indexed custodian,
        uint256 fromDepositId,
        uint256 toDepositId,
        uint256 assets
    );
    event WithdrawalsSettled(
        uint256 indexed settlementId,
        address indexed funder,
        uint256 requestCount,
        uint256 shares,
        uint256 assets,
        uint256 navPerShare
    );

    string public constant name = "Benchmark Vault";
    string public constant symbol = "vBENCH";
    uint8 public constant decimals = 6;
    uint256 private constant UNIT = 1e6;

    uint256 public immutable users;
    uint256 public rounds;
    uint256 public navCount;

    constructor(uint256 users_) {
        users = users_;
    }

    function asset() external view returns (address) {
        return address(this);
    }

    /// Emits 20 * n logs.
    function emitRounds(uint256 n) external {
        uint256 first = rounds;
        uint256 nav = navCount;
        for (uint256 round = first; round < first + n; round++) {
            _deposits(round);
            _withdrawals(round);
            _nav(++nav);
        }
        rounds = first + n;
        navCount = nav;
    }

    /// Emits one log.
    function emitNav() external {
        _nav(++navCount);
    }

    function _deposits(uint256 round) private {
        uint256 first = round * 10 + 1;
        uint256 sum;
        for (uint256 id = first; id < first + 10; id++) {
            uint256 assets = _amount(id);
            sum += assets;
            emit DepositAccepted(id, _user(id), _partner(id), msg.sender, assets, assets);
        }
        emit DepositsSwept(round + 1, msg.sender, first, first + 9, sum);
    }

    function _withdrawals(uint256 round) private {
        uint256 first = round * 3;
        uint256 sum;
        for (uint256 index = first; index < first + 3; index++) {
            uint256 shares = _amount(index);
            emit WithdrawalRequested(index, _user(index), _partner(index), _user(index), shares, shares, 0);
        }
        for (uint256 index = first; index < first + 2; index++) {
            uint256 shares = _amount(index);
            sum += shares;
            emit WithdrawalFunded(index, _user(index), round + 1, shares, shares);
        }
        emit WithdrawalsSettled(round + 1, msg.sender, 2, sum, sum, 1e18);
        emit WithdrawalClaimed(first, _user(first), _user(first), _amount(first), _amount(first));
        emit WithdrawalCancelled(first + 2, _user(first + 2), _amount(first + 2));
    }

    function _nav(uint256 id) private {
        emit NavUpdated(id, msg.sender, 1e18 + id, id * UNIT, id * UNIT);
    }

    /// Users appear in no particular order, like real ones.
    function _user(uint256 id) private view returns (address) {
        return address(uint160(uint256(keccak256(abi.encode(id * 2654435761 % users)))));
    }

    function _partner(uint256 id) private pure returns (uint32) {
        return id % 4 == 0 ? uint32(1 + id / 4 % 2) : 0;
    }

    function _amount(uint256 id) private pure returns (uint256) {
        return (id % 1000 + 1) * UNIT;
    }
}
