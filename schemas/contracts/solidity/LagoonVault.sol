// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ShareVault} from "./ShareVault.sol";

/// A vault that emits the events of Lagoon v0.6: deposits and redemptions are requested in epochs, and settled together.
/// Shares have 18 decimals, also of an asset of 6. For development chains.
contract LagoonVault is ShareVault {
    event Referral(address indexed referral, address indexed owner, uint256 indexed requestId, uint256 assets);
    event DepositRequest(
        address indexed controller, address indexed owner, uint256 indexed requestId, address sender, uint256 assets
    );
    event DepositRequestCanceled(uint256 indexed requestId, address indexed controller);
    event RedeemRequest(
        address indexed controller, address indexed owner, uint256 indexed requestId, address sender, uint256 shares
    );
    event RedeemRequestCanceled(uint256 indexed requestId, address indexed controller, uint256 requestedAmount);
    event SettleDeposit(
        uint40 indexed epochId, uint40 indexed settledId, uint256 totalAssets, uint256 totalSupply,
        uint256 assetsDeposited, uint256 sharesMinted
    );
    event SettleRedeem(
        uint40 indexed epochId, uint40 indexed settledId, uint256 totalAssets, uint256 totalSupply,
        uint256 assetsWithdrawed, uint256 sharesBurned
    );
    event NewTotalAssetsUpdated(uint256 totalAssets);
    event TotalAssetsUpdated(uint256 totalAssets);
    event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event DepositSync(address indexed sender, address indexed owner, uint256 assets, uint256 shares);
    event Withdraw(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );
    event WithdrawSync(
        address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares
    );

    error NotCancelable();
    error NotClaimable();
    error OnlyOneRequestAllowed();

    /// A side of the vault: the epoch that accepts requests, and the pending amounts of the unsettled epochs.
    struct Side {
        uint40 epochId;
        uint40 settleId;
        uint40 settledTo;
        uint256 pending;
        uint256 current;
        mapping(address => uint40) lastId;
        mapping(uint40 => mapping(address => uint256)) requests;
    }

    /// The totals of the requests that were settled together.
    struct Price {
        uint256 assets;
        uint256 shares;
    }

    Side private deposits;
    Side private redeems;
    mapping(uint40 => uint40) private settleOf;
    mapping(uint40 => Price) private prices;

    constructor(string memory name_, string memory symbol_, address asset_) ShareVault(name_, symbol_, asset_, 12) {
        (deposits.epochId, deposits.settleId) = (1, 1);
        (redeems.epochId, redeems.settleId) = (2, 2);
    }

    function requestDeposit(uint256 assets, address controller, address referral) external returns (uint256 id) {
        id = _request(deposits, controller, assets);
        asset.transferFrom(msg.sender, address(this), assets);
        emit DepositRequest(controller, msg.sender, id, msg.sender, assets);
        if (referral != address(0)) emit Referral(referral, msg.sender, id, assets);
    }

    function requestRedeem(uint256 shares, address controller) external returns (uint256 id) {
        id = _request(redeems, controller, shares);
        _move(msg.sender, address(this), shares);
        emit RedeemRequest(controller, msg.sender, id, msg.sender, shares);
    }

    function cancelRequestDeposit() external {
        uint256 assets = _cancel(deposits);
        asset.transfer(msg.sender, assets);
        emit DepositRequestCanceled(deposits.epochId, msg.sender);
    }

    function cancelRequestRedeem() external {
        uint256 shares = _cancel(redeems);
        _move(address(this), msg.sender, shares);
        emit RedeemRequestCanceled(redeems.epochId, msg.sender, shares);
    }

    function updateNewTotalAssets(uint256 value) external onlyManager {
        _next(deposits);
        _next(redeems);
        emit NewTotalAssetsUpdated(value);
    }

    /// Settles deposits and, if the vault can pay them, redemptions.
    function settle(uint256 value) external onlyManager {
        totalAssets = value;
        emit TotalAssetsUpdated(value);
        _mint(manager, totalSupply / 2000); // the fees
        uint256 assets = deposits.pending;
        if (assets > 0) {
            uint256 shares = convertToShares(assets);
            (uint40 epoch, uint40 id) = _settle(deposits, assets, shares);
            totalAssets += assets;
            _mint(address(this), shares);
            emit SettleDeposit(epoch, id, totalAssets, totalSupply, assets, shares);
        }
        uint256 burned = redeems.pending;
        if (burned > 0) {
            uint256 paid = convertToAssets(burned);
            (uint40 epoch, uint40 id) = _settle(redeems, paid, burned);
            totalAssets -= paid;
            _burn(address(this), burned);
            emit SettleRedeem(epoch, id, totalAssets, totalSupply, paid, burned);
        }
    }

    /// Claims the shares of a settled deposit.
    function deposit(uint256 assets, address receiver) external returns (uint256 shares) {
        Price memory price = _claim(deposits, assets);
        shares = assets * price.shares / price.assets;
        _move(address(this), receiver, shares);
        emit Deposit(msg.sender, receiver, assets, shares);
    }

    /// Claims the assets of a settled redemption, or of a part of it.
    function redeem(uint256 shares, address receiver) external returns (uint256 assets) {
        Price memory price = _claim(redeems, shares);
        assets = shares * price.assets / price.shares;
        asset.transfer(receiver, assets);
        emit Withdraw(msg.sender, receiver, msg.sender, assets, shares);
    }

    function syncDeposit(uint256 assets, address receiver, address referral) external returns (uint256 shares) {
        shares = _join(msg.sender, receiver, assets);
        emit DepositSync(msg.sender, receiver, assets, shares);
        emit Referral(referral, msg.sender, 0, assets);
    }

    function syncRedeem(uint256 shares, address receiver) external returns (uint256 assets) {
        assets = _leave(msg.sender, receiver, shares);
        emit WithdrawSync(msg.sender, receiver, msg.sender, assets, shares);
    }

    function pendingDepositRequest(address controller) external view returns (uint256) {
        return _open(deposits, controller, false);
    }

    function claimableDepositRequest(address controller) external view returns (uint256) {
        return _open(deposits, controller, true);
    }

    function pendingRedeemRequest(address controller) external view returns (uint256) {
        return _open(redeems, controller, false);
    }

    function claimableRedeemRequest(address controller) external view returns (uint256) {
        return _open(redeems, controller, true);
    }

    function _open(Side storage s, address controller, bool settled) private view returns (uint256) {
        uint40 id = s.lastId[controller];
        return id == 0 || (id <= s.settledTo) != settled ? 0 : s.requests[id][controller];
    }

    function _request(Side storage s, address controller, uint256 amount) private returns (uint40 id) {
        id = s.epochId;
        uint40 last = s.lastId[controller];
        if (last != id && last != 0 && s.requests[last][controller] > 0) revert OnlyOneRequestAllowed();
        s.lastId[controller] = id;
        s.requests[id][controller] += amount;
        s.current += amount;
    }

    function _cancel(Side storage s) private returns (uint256 amount) {
        if (s.lastId[msg.sender] != s.epochId) revert NotCancelable();
        amount = s.requests[s.epochId][msg.sender];
        if (amount == 0) revert NotCancelable();
        s.requests[s.epochId][msg.sender] = 0;
        s.current -= amount;
    }

    /// The next epoch accepts requests, and this one waits for a settlement.
    function _next(Side storage s) private {
        settleOf[s.epochId] = s.settleId;
        s.pending += s.current;
        if (s.current > 0) s.epochId += 2;
        s.current = 0;
    }

    function _settle(Side storage s, uint256 assets, uint256 shares) private returns (uint40 epoch, uint40 id) {
        (epoch, id) = (s.epochId - 2, s.settleId);
        prices[id] = Price(assets, shares);
        s.settledTo = epoch;
        s.settleId += 2;
        s.pending = 0;
    }

    function _claim(Side storage s, uint256 amount) private returns (Price memory) {
        uint40 id = s.lastId[msg.sender];
        if (id == 0 || id > s.settledTo) revert NotClaimable();
        s.requests[id][msg.sender] -= amount;
        return prices[settleOf[id]];
    }
}
