// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20, IERC20, TokenCalls} from "./ERC20.sol";

/// The vault that defines navlog's events: an ERC-20 share over one ERC-20 asset with synchronous deposits and
/// queued withdrawals. The assets are with a custodian, so only an oracle knows their value.
///
///   deposit            asset -> vault, shares minted at the current NAV
///   sweepDeposits      the oldest unswept deposits -> custodian
///   requestWithdrawal  shares -> escrow in this contract
///   settleWithdrawals  the manager pays assets in, the escrowed shares are burned (a request becomes Funded)
///   claimWithdrawal    assets -> receiver
///
///   Pending --settle--> Funded --claim--> Claimed
///      |--cancel (owner, before expiresAt)--> Cancelled
///      '--expire (anyone, from expiresAt on)--> Expired
///
/// totalAssets is the oracle's last value, plus the deposits and minus the fundings since then. Shares have the
/// asset's decimals. The asset is trusted: no fee on transfer, no call back into the vault.
contract ReferenceVault is ERC20 {
    using TokenCalls for IERC20;

    enum Status {
        Pending,
        Funded,
        Claimed,
        Cancelled,
        Expired
    }

    struct Request {
        address owner;
        uint64 expiresAt; // Unix seconds, 0 = never
        uint32 partnerId; // 0 = none
        address receiver;
        Status status;
        uint256 shares;
        uint256 assetsEstimate; // at the NAV of the request
        uint256 assets; // final, 0 until funded
    }

    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event Withdraw(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );

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
    event WithdrawalExpired(uint256 indexed requestIndex, address indexed owner, uint256 shares);
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

    error NotAuthorized(address caller);
    error SynchronousExitClosed();
    error ZeroAmount();
    error ZeroNav();
    error UnknownRequest(uint256 requestIndex);
    error WrongStatus(uint256 requestIndex, Status status);
    error RequestExpired(uint256 requestIndex, uint64 expiresAt);
    error RequestNotExpired(uint256 requestIndex, uint64 expiresAt);
    error WrongSweepRange(uint256 sweptTo, uint256 toDepositId, uint256 depositCount);

    address public immutable asset;
    address public immutable owner;
    address public oracle;
    address public manager;
    address public custodian;
    /// Seconds that a new request stays open, 0 = forever.
    uint64 public requestTtl;

    uint256 public totalAssets;
    uint256 public totalClaimed;
    uint256 public depositCount;
    /// The newest swept deposit, 0 before the first sweep.
    uint256 public sweptTo;
    uint256 public navCount;
    uint256 public sweepCount;
    uint256 public settlementCount;

    /// Sum of the assets of deposits 1..i, so that the sum of any range is one subtraction.
    mapping(uint256 => uint256) private _depositedUpTo;
    Request[] private _requests;

    constructor(
        string memory name_,
        string memory symbol_,
        address asset_,
        address oracle_,
        address manager_,
        address custodian_
    ) ERC20(name_, symbol_, IERC20(asset_).decimals()) {
        asset = asset_;
        owner = msg.sender;
        _setRoles(oracle_, manager_, custodian_);
    }

    modifier only(address role) {
        if (msg.sender != role) revert NotAuthorized(msg.sender);
        _;
    }

    // Administration

    function setRoles(address oracle_, address manager_, address custodian_) external only(owner) {
        _setRoles(oracle_, manager_, custodian_);
    }

    /// Applies to new requests; open requests keep their expiry.
    function setRequestTtl(uint64 seconds_) external only(owner) {
        requestTtl = seconds_;
    }

    // Deposits

    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        return _deposit(assets, receiver, 0);
    }

    /// The referral overload: the same deposit, attributed to a partner.
    function deposit(uint256 assets, address receiver, uint32 partnerId) external returns (uint256 shares) {
        return _deposit(assets, receiver, partnerId);
    }

    /// Moves deposits sweptTo + 1 .. toDepositId to the custodian.
    function sweepDeposits(uint256 toDepositId) external only(manager) returns (uint256 assets) {
        uint256 from = sweptTo;
        if (toDepositId <= from || toDepositId > depositCount) {
            revert WrongSweepRange(from, toDepositId, depositCount);
        }
        assets = _depositedUpTo[toDepositId] - _depositedUpTo[from];
        sweptTo = toDepositId;
        IERC20(asset).pay(custodian, assets);
        emit DepositsSwept(++sweepCount, custodian, from + 1, toDepositId, assets);
    }

    // Withdrawals

    function requestWithdrawal(uint256 shares, address receiver) external returns (uint256 requestIndex) {
        return _request(msg.sender, shares, receiver, 0);
    }

    function requestWithdrawal(uint256 shares, address receiver, uint32 partnerId)
        external
        returns (uint256 requestIndex)
    {
        return _request(msg.sender, shares, receiver, partnerId);
    }

    /// A request on behalf of a holder who has approved the caller for the shares. The router uses it, so that the holder
    /// owns the request, and not the router.
    function requestWithdrawalFor(address holder, uint256 shares, address receiver, uint32 partnerId)
        external
        returns (uint256 requestIndex)
    {
        _spendAllowance(holder, msg.sender, shares);
        return _request(holder, shares, receiver, partnerId);
    }

    /// Pays a funded request to its receiver; the owner or the receiver may call it.
    function claimWithdrawal(uint256 requestIndex) external returns (uint256 assets) {
        Request storage r = _at(requestIndex, Status.Funded);
        if (msg.sender != r.owner && msg.sender != r.receiver) revert NotAuthorized(msg.sender);
        assets = r.assets;
        r.status = Status.Claimed;
        totalClaimed += assets;
        IERC20(asset).pay(r.receiver, assets);
        emit WithdrawalClaimed(requestIndex, r.owner, r.receiver, r.shares, assets);
        emit Withdraw(msg.sender, r.receiver, r.owner, assets, r.shares);
    }

    function cancelWithdrawal(uint256 requestIndex) external {
        Request storage r = _at(requestIndex, Status.Pending);
        if (msg.sender != r.owner) revert NotAuthorized(msg.sender);
        if (_isExpired(r)) revert RequestExpired(requestIndex, r.expiresAt);
        r.status = Status.Cancelled;
        _move(address(this), r.owner, r.shares);
        emit WithdrawalCancelled(requestIndex, r.owner, r.shares);
    }

    function expireWithdrawal(uint256 requestIndex) external {
        Request storage r = _at(requestIndex, Status.Pending);
        if (!_isExpired(r)) revert RequestNotExpired(requestIndex, r.expiresAt);
        r.status = Status.Expired;
        _move(address(this), r.owner, r.shares);
        emit WithdrawalExpired(requestIndex, r.owner, r.shares);
    }

    /// Funds requests at the current NAV with assets that the manager pays in. It funds all of them or none.
    function settleWithdrawals(uint256[] calldata requestIndexes) external only(manager) returns (uint256 assets) {
        if (requestIndexes.length == 0) revert ZeroAmount();
        uint256 nav = navPerShare();
        uint256 settlementId = ++settlementCount;
        uint256 supply = totalSupply; // one price for the whole settlement, although it burns shares
        uint256 worth = totalAssets;
        uint256 shares;
        for (uint256 i = 0; i < requestIndexes.length; i++) {
            Request storage r = _at(requestIndexes[i], Status.Pending);
            if (_isExpired(r)) revert RequestExpired(requestIndexes[i], r.expiresAt);
            r.status = Status.Funded;
            r.assets = r.shares * worth / supply;
            shares += r.shares;
            assets += r.assets;
            emit WithdrawalFunded(requestIndexes[i], r.owner, settlementId, r.shares, r.assets);
        }
        _burn(address(this), shares);
        totalAssets = worth - assets;
        IERC20(asset).pull(msg.sender, assets);
        emit WithdrawalsSettled(settlementId, msg.sender, requestIndexes.length, shares, assets, nav);
    }

    // NAV

    /// The oracle sets the current value of all shares; it includes open requests until they are funded.
    function updateNav(uint256 totalAssets_) external only(oracle) {
        totalAssets = totalAssets_;
        emit NavUpdated(++navCount, msg.sender, navPerShare(), totalAssets_, totalSupply);
    }

    /// Assets per share with 18 decimals, 1.0 = 10^18; shares and assets have the same decimals. 1.0 without shares.
    function navPerShare() public view returns (uint256) {
        return totalSupply == 0 ? 1e18 : totalAssets * 1e18 / totalSupply;
    }

    // Views

    function totalDeposited() external view returns (uint256) {
        return _depositedUpTo[depositCount];
    }

    function requestCount() external view returns (uint256) {
        return _requests.length;
    }

    function request(uint256 requestIndex) external view returns (Request memory) {
        if (requestIndex >= _requests.length) revert UnknownRequest(requestIndex);
        return _requests[requestIndex];
    }

    /// Requests first .. first + count - 1, fewer if the vault has fewer.
    function requests(uint256 first, uint256 count) external view returns (Request[] memory page) {
        uint256 all = _requests.length;
        uint256 left = first < all ? all - first : 0;
        page = new Request[](count < left ? count : left);
        for (uint256 i = 0; i < page.length; i++) {
            page[i] = _requests[first + i];
        }
    }

    function convertToShares(uint256 assets) public view returns (uint256) {
        if (totalSupply == 0) return assets;
        if (totalAssets == 0) revert ZeroNav();
        return assets * totalSupply / totalAssets;
    }

    function convertToAssets(uint256 shares) public view returns (uint256) {
        return totalSupply == 0 ? shares : shares * totalAssets / totalSupply;
    }

    function previewDeposit(uint256 assets) external view returns (uint256) {
        return convertToShares(assets);
    }

    function maxDeposit(address) external pure returns (uint256) {
        return type(uint256).max;
    }

    // The rest of ERC-4626 is disabled: shares are bought for an amount of assets, and withdrawals go through the queue.

    function maxMint(address) external pure returns (uint256) {
        return 0;
    }

    function maxWithdraw(address) external pure returns (uint256) {
        return 0;
    }

    function maxRedeem(address) external pure returns (uint256) {
        return 0;
    }

    function withdraw(uint256, address, address) external pure returns (uint256) {
        revert SynchronousExitClosed();
    }

    function redeem(uint256, address, address) external pure returns (uint256) {
        revert SynchronousExitClosed();
    }

    // Internals

    function _setRoles(address oracle_, address manager_, address custodian_) private {
        if (oracle_ == address(0) || manager_ == address(0) || custodian_ == address(0)) revert ZeroAddress();
        oracle = oracle_;
        manager = manager_;
        custodian = custodian_;
    }

    function _deposit(uint256 assets, address receiver, uint32 partnerId) private returns (uint256 shares) {
        shares = convertToShares(assets);
        if (shares == 0) revert ZeroAmount();
        IERC20(asset).pull(msg.sender, assets);
        uint256 depositId = ++depositCount;
        _depositedUpTo[depositId] = _depositedUpTo[depositId - 1] + assets;
        totalAssets += assets;
        _mint(receiver, shares);
        emit Deposit(msg.sender, receiver, assets, shares);
        emit DepositAccepted(depositId, receiver, partnerId, msg.sender, assets, shares);
    }

    function _request(address holder, uint256 shares, address receiver, uint32 partnerId)
        private
        returns (uint256 requestIndex)
    {
        if (shares == 0) revert ZeroAmount();
        if (receiver == address(0)) revert ZeroAddress();
        uint256 estimate = convertToAssets(shares);
        uint64 expiresAt = requestTtl == 0 ? 0 : uint64(block.timestamp) + requestTtl;
        requestIndex = _requests.length;
        _requests.push(Request(holder, expiresAt, partnerId, receiver, Status.Pending, shares, estimate, 0));
        _move(holder, address(this), shares);
        emit WithdrawalRequested(requestIndex, holder, partnerId, receiver, shares, estimate, expiresAt);
    }

    function _at(uint256 requestIndex, Status wanted) private view returns (Request storage r) {
        if (requestIndex >= _requests.length) revert UnknownRequest(requestIndex);
        r = _requests[requestIndex];
        if (r.status != wanted) revert WrongStatus(requestIndex, r.status);
    }

    function _isExpired(Request storage r) private view returns (bool) {
        return r.expiresAt != 0 && block.timestamp >= r.expiresAt;
    }
}
