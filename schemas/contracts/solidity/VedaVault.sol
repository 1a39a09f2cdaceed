// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ShareVault} from "./ShareVault.sol";

/// Contracts that emit the events of Veda's BoringVault, its teller, accountant and queue. For development chains.
contract VedaVault is ShareVault {
    event Enter(address indexed from, address indexed asset, uint256 amount, address indexed to, uint256 shares);
    event Exit(address indexed to, address indexed asset, uint256 amount, address indexed from, uint256 shares);

    VedaTeller public immutable teller;
    VedaAccountant public immutable accountant;
    VedaQueue public immutable queue;
    mapping(address => uint256) public entered;
    mapping(address => uint256) public paid;

    constructor(string memory name_, string memory symbol_, address asset_) ShareVault(name_, symbol_, asset_, 0) {
        teller = new VedaTeller(this);
        accountant = new VedaAccountant(msg.sender);
        queue = new VedaQueue(this, msg.sender);
    }

    function enter(address from, uint256 amount, address to, uint256 shares) external {
        require(msg.sender == address(teller));
        asset.transferFrom(from, address(this), amount);
        _mint(to, shares);
        entered[to] += amount;
        emit Enter(from, address(asset), amount, to, shares);
    }

    function exit(address to, uint256 amount, address from, uint256 shares) external {
        require(msg.sender == address(queue) || msg.sender == address(teller));
        _burn(from, shares);
        asset.transfer(to, amount);
        paid[to] += amount;
        emit Exit(to, address(asset), amount, from, shares);
    }
}

contract VedaTeller {
    event Deposit(
        uint256 indexed nonce, address indexed receiver, address indexed depositAsset, uint256 depositAmount,
        uint256 shareAmount, uint256 depositTimestamp, uint256 shareLockPeriodAtTimeOfDeposit
    );
    event Deposit(
        uint256 nonce, address indexed receiver, address indexed depositAsset, uint256 depositAmount, uint256 shareAmount,
        uint256 depositTimestamp, uint256 shareLockPeriodAtTimeOfDeposit, address indexed referralAddress
    );
    event BulkDeposit(address indexed asset, uint256 depositAmount);
    event Withdraw(address indexed asset, uint256 shareAmount);

    VedaVault private immutable vault;
    uint256 private nonce = 1;

    constructor(VedaVault vault_) {
        vault = vault_;
    }

    function deposit(uint256 amount) external {
        uint256 shares = _enter(amount, msg.sender);
        emit Deposit(nonce++, msg.sender, address(vault.asset()), amount, shares, block.timestamp, 0);
    }

    /// What `deposit` of newer tellers does.
    function depositReferred(uint256 amount, address referral) external {
        uint256 shares = _enter(amount, msg.sender);
        emit Deposit(nonce++, msg.sender, address(vault.asset()), amount, shares, block.timestamp, 0, referral);
    }

    function bulkDeposit(uint256 amount, address to) external {
        _enter(amount, to);
        emit BulkDeposit(address(vault.asset()), amount);
    }

    function withdraw(uint256 shares, address to) external {
        vault.exit(to, shares * vault.accountant().rate() / 1e18, msg.sender, shares);
        emit Withdraw(address(vault.asset()), shares);
    }

    function _enter(uint256 amount, address to) private returns (uint256 shares) {
        shares = amount * 1e18 / vault.accountant().rate();
        vault.enter(msg.sender, amount, to, shares);
    }
}

contract VedaAccountant {
    event ExchangeRateUpdated(uint96 oldRate, uint96 newRate, uint64 currentTime);

    address private immutable manager;
    uint96 public rate = 1e18;

    constructor(address manager_) {
        manager = manager_;
    }

    function updateExchangeRate(uint96 to) external {
        require(msg.sender == manager);
        emit ExchangeRateUpdated(rate, to, uint64(block.timestamp));
        rate = to;
    }
}

contract VedaQueue {
    event OnChainWithdrawRequested(
        bytes32 indexed requestId, address indexed user, address indexed assetOut, uint96 nonce, uint128 amountOfShares,
        uint128 amountOfAssets, uint40 creationTime, uint24 secondsToMaturity, uint24 secondsToDeadline
    );
    event OnChainWithdrawCancelled(bytes32 indexed requestId, address indexed user, uint256 timestamp);
    event OnChainWithdrawSolved(bytes32 indexed requestId, address indexed user, uint256 timestamp);

    struct Request {
        address user;
        uint128 shares;
        uint128 assets;
    }

    VedaVault private immutable vault;
    address private immutable solver;
    uint96 private nonce = 1;
    mapping(bytes32 => Request) public requests;

    constructor(VedaVault vault_, address solver_) {
        (vault, solver) = (vault_, solver_);
    }

    function requestOnChainWithdraw(uint128 shares, uint24 maturity, uint24 deadline) external returns (bytes32 id) {
        uint128 assets = uint128(uint256(shares) * vault.accountant().rate() / 1e18);
        id = keccak256(abi.encode(nonce, msg.sender, shares, assets, block.timestamp));
        requests[id] = Request(msg.sender, shares, assets);
        vault.transferFrom(msg.sender, address(this), shares);
        emit OnChainWithdrawRequested(
            id, msg.sender, address(vault.asset()), nonce++, shares, assets, uint40(block.timestamp), maturity, deadline
        );
    }

    function cancelOnChainWithdraw(bytes32 id) external {
        Request memory r = _take(id);
        require(r.user == msg.sender);
        vault.transfer(r.user, r.shares);
        emit OnChainWithdrawCancelled(id, r.user, block.timestamp);
    }

    function solveOnChainWithdraw(bytes32 id) external {
        require(msg.sender == solver);
        Request memory r = _take(id);
        vault.exit(r.user, r.assets, address(this), r.shares);
        emit OnChainWithdrawSolved(id, r.user, block.timestamp);
    }

    function _take(bytes32 id) private returns (Request memory r) {
        r = requests[id];
        require(r.user != address(0));
        delete requests[id];
    }
}
