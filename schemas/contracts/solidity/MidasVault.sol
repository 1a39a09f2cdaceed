// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20, IERC20} from "./ERC20.sol";

/// Contracts of our own that emit the events of an mToken of Midas, of the vaults that mint and redeem it, and of the feed of
/// its price. For development chains. Amounts have 18 decimals, whatever the token that pays has, and a fee in its units.
contract MidasVault is ERC20 {
    address public immutable manager = msg.sender;
    MidasFeed public immutable feed;
    MidasDeposits public immutable deposits;
    MidasRedemptions public immutable redemptions;

    constructor(string memory name_, string memory symbol_, address token) ERC20(name_, symbol_, 18) {
        feed = new MidasFeed(msg.sender);
        deposits = new MidasDeposits(this, IERC20(token), msg.sender);
        redemptions = new MidasRedemptions(this, IERC20(token), msg.sender);
    }

    function mint(address to, uint256 amount) external {
        require(msg.sender == address(deposits));
        _mint(to, amount);
    }

    function burn(address from, uint256 amount) external {
        require(msg.sender == address(redemptions));
        _burn(from, amount);
    }

    /// What the two vaults say of a user, in one place for tests.
    function pendingDeposits(address user) external view returns (uint256) {
        return deposits.pending(user);
    }

    function minted(address user) external view returns (uint256) {
        return deposits.minted(user);
    }

    function pendingShares(address user) external view returns (uint256) {
        return redemptions.pending(user);
    }

    function paid(address user) external view returns (uint256) {
        return redemptions.paid(user);
    }
}

contract MidasFeed {
    event AnswerUpdated(int256 indexed data, uint256 indexed roundId, uint256 indexed timestamp);

    address private immutable manager;
    uint80 private latestRound;
    int256 public lastAnswer = 1e8;

    constructor(address manager_) {
        manager = manager_;
    }

    function setRoundData(int256 data) external {
        require(msg.sender == manager && data > 0);
        lastAnswer = data;
        emit AnswerUpdated(data, ++latestRound, block.timestamp);
    }

    function rate() external view returns (uint256) {
        return uint256(lastAnswer) * 1e10;
    }
}

/// What the two vaults have in common: a token that counts as one dollar, and the manager, who holds it.
abstract contract MidasManaged {
    event ApproveRequest(uint256 indexed requestId, uint256 newRate);
    event SafeApproveRequest(uint256 indexed requestId, uint256 newRate);
    event RejectRequest(uint256 indexed requestId, address indexed user);

    struct Request {
        address user;
        address owner;
        uint256 amount;
    }

    MidasVault internal immutable mToken;
    IERC20 internal immutable token;
    address internal immutable manager;
    uint256 private immutable unit;
    uint256 public nextId;
    mapping(uint256 => Request) public requests;
    mapping(address => uint256) public pending;

    constructor(MidasVault mToken_, IERC20 token_, address manager_) {
        (mToken, token, manager) = (mToken_, token_, manager_);
        unit = 10 ** (18 - token_.decimals());
    }

    modifier onlyManager() {
        require(msg.sender == manager);
        _;
    }

    /// Approves a request at any price.
    function approveRequest(uint256 id, uint256 newRate) external onlyManager {
        _approve(_take(id), newRate);
        emit ApproveRequest(id, newRate);
    }

    /// Approves requests at a price that is near the newest one.
    function safeBulkApproveRequest(uint256[] calldata ids, uint256 newRate) external onlyManager {
        uint256 rate = mToken.feed().rate();
        require(newRate > rate * 99 / 100 && newRate < rate * 101 / 100);
        for (uint256 i; i < ids.length; i++) {
            _approve(_take(ids[i]), newRate);
            emit SafeApproveRequest(ids[i], newRate);
        }
    }

    function rejectRequest(uint256 id) external onlyManager {
        emit RejectRequest(id, _take(id).user);
    }

    function _approve(Request memory r, uint256 newRate) internal virtual;

    /// A request of a user, which counts for its owner.
    function _add(address user, address owner, uint256 amount) internal returns (uint256 id) {
        require(amount > 0);
        id = nextId++;
        requests[id] = Request(user, owner, amount);
        pending[owner] += amount;
    }

    function _take(uint256 id) private returns (Request memory r) {
        r = requests[id];
        require(r.amount > 0);
        pending[r.owner] -= r.amount;
        delete requests[id];
    }

    /// Moves an amount of 18 decimals, without what is less than a unit of the token.
    function _pay(address from, address to, uint256 amount) internal {
        token.transferFrom(from, to, amount / unit);
    }

    function _truncate(uint256 amount) internal view returns (uint256) {
        return amount / unit * unit;
    }
}

contract MidasDeposits is MidasManaged {
    event DepositInstant(
        address indexed user, address indexed tokenIn, uint256 amountUsd, uint256 amountToken, uint256 fee, uint256 minted,
        bytes32 referrerId
    );
    event DepositInstantWithCustomRecipient(
        address indexed user, address indexed tokenIn, address recipient, uint256 amountUsd, uint256 amountToken,
        uint256 fee, uint256 minted, bytes32 referrerId
    );
    event DepositRequest(
        uint256 indexed requestId, address indexed user, address indexed tokenIn, uint256 amountToken, uint256 amountUsd,
        uint256 fee, uint256 tokenOutRate, bytes32 referrerId
    );
    event DepositRequestWithCustomRecipient(
        uint256 indexed requestId, address indexed user, address indexed tokenIn, address recipient, uint256 amountToken,
        uint256 amountUsd, uint256 fee, uint256 tokenOutRate, bytes32 referrerId
    );

    mapping(address => uint256) public minted;

    constructor(MidasVault mToken_, IERC20 token_, address manager_) MidasManaged(mToken_, token_, manager_) {}

    function depositInstant(uint256 amount, bytes32 referrer, address recipient) external {
        (uint256 fee, uint256 rate) = _receive(amount, 50);
        uint256 shares = _mint(recipient, amount - fee, rate);
        if (recipient == msg.sender) {
            emit DepositInstant(msg.sender, address(token), amount, amount, fee, shares, referrer);
        } else {
            emit DepositInstantWithCustomRecipient(
                msg.sender, address(token), recipient, amount, amount, fee, shares, referrer
            );
        }
    }

    function depositRequest(uint256 amount, bytes32 referrer, address recipient) external {
        (uint256 fee, uint256 rate) = _receive(amount, 10);
        uint256 id = _add(recipient, recipient, amount - fee);
        if (recipient == msg.sender) {
            emit DepositRequest(id, msg.sender, address(token), amount, amount, fee, rate, referrer);
        } else {
            emit DepositRequestWithCustomRecipient(
                id, msg.sender, address(token), recipient, amount, amount, fee, rate, referrer
            );
        }
    }

    function _approve(Request memory r, uint256 newRate) internal override {
        _mint(r.user, r.amount, newRate);
    }

    function _receive(uint256 amount, uint256 points) private returns (uint256 fee, uint256 rate) {
        fee = _truncate(amount * points / 10_000);
        rate = mToken.feed().rate();
        _pay(msg.sender, manager, amount);
    }

    function _mint(address to, uint256 amount, uint256 rate) private returns (uint256 shares) {
        shares = amount * 1e18 / rate;
        require(shares > 0);
        minted[to] += shares;
        mToken.mint(to, shares);
    }
}

contract MidasRedemptions is MidasManaged {
    event RedeemInstant(
        address indexed user, address indexed tokenOut, uint256 amount, uint256 feeAmount, uint256 amountTokenOut
    );
    event RedeemInstantWithCustomRecipient(
        address indexed user, address indexed tokenOut, address recipient, uint256 amount, uint256 feeAmount,
        uint256 amountTokenOut
    );
    event RedeemRequest(
        uint256 indexed requestId, address indexed user, address indexed tokenOut, uint256 amountMTokenIn, uint256 feeAmount
    );
    event RedeemRequestWithCustomRecipient(
        uint256 indexed requestId, address indexed user, address indexed tokenOut, address recipient,
        uint256 amountMTokenIn, uint256 feeAmount
    );

    /// What requests of a user were worth when they were approved, and what was paid at once.
    mapping(address => uint256) public paid;

    constructor(MidasVault mToken_, IERC20 token_, address manager_) MidasManaged(mToken_, token_, manager_) {}

    function redeemInstant(uint256 amount, address recipient) external {
        uint256 fee = _fee(amount, 50);
        mToken.burn(msg.sender, amount - fee);
        uint256 out = _truncate((amount - fee) * mToken.feed().rate() / 1e18);
        require(out > 0);
        _pay(manager, recipient, out);
        paid[msg.sender] += out;
        if (recipient == msg.sender) {
            emit RedeemInstant(msg.sender, address(token), amount, fee, out);
        } else {
            emit RedeemInstantWithCustomRecipient(msg.sender, address(token), recipient, amount, fee, out);
        }
    }

    function redeemRequest(uint256 amount, address recipient) external {
        uint256 fee = _fee(amount, 10);
        mToken.transferFrom(msg.sender, address(this), amount - fee);
        uint256 id = _add(recipient, msg.sender, amount - fee);
        if (recipient == msg.sender) {
            emit RedeemRequest(id, msg.sender, address(token), amount, fee);
        } else {
            emit RedeemRequestWithCustomRecipient(id, msg.sender, address(token), recipient, amount, fee);
        }
    }

    function _approve(Request memory r, uint256 newRate) internal override {
        uint256 worth = r.amount * newRate / 1e18;
        _pay(manager, r.user, worth);
        mToken.burn(address(this), r.amount);
        paid[r.owner] += worth;
    }

    function _fee(uint256 amount, uint256 points) private returns (uint256 fee) {
        fee = amount * points / 10_000;
        if (fee > 0) mToken.transferFrom(msg.sender, manager, fee);
    }
}
